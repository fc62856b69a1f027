"""`nerm completion`: the script that teaches a shell to complete."""

import click


@click.command(epilog='\b\nExamples:\n  eval "$(nerm completion bash)"\n  eval "$(nerm completion zsh)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for your shell."""
    from click.shell_completion import get_completion_class

    from nerm.cli import cli

    maker = get_completion_class(shell)
    assert maker is not None
    click.echo(maker(cli, {}, "nerm", "_NERM_COMPLETE").source())
