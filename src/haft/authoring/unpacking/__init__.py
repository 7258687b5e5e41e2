"""What taking in archives of any kind needs: a folder that is filled and counted, zip files that nobody vouches for."""
