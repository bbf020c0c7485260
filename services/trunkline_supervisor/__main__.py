"""`python -m trunkline_supervisor`: what `trunkline up` becomes."""

from trunkline_supervisor.main import main

if __name__ == "__main__":
    main()
