"""The commands of ``ragstack``, a module for each command or family; a command imports no other command."""
