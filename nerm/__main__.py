"""`python -m nerm` is the command `nerm`."""

if __name__ == "__main__":
    from nerm.cli import main

    main()
