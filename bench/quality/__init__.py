"""How good the answers are: every retrieval set of the shared folder, beside two peers that search by words."""
