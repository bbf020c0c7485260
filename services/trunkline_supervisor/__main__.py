"""`python -m trunkline_supervisor`: what `trunkline up` becomes."""

import gc

if __name__ == "__main__":
    gc.disable()  # among modules being loaded there is no garbage; `main` enables it
    from trunkline_supervisor.main import main

    main()
