old build b
