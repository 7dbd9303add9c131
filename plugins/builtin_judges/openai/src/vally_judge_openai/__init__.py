"""Judge for vally: chat completions and responses, also of Azure and compatible servers."""
