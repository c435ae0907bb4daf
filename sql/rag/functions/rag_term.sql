-- Returns the number of a term in the index: a hash of 32 bits. Among 100,000 terms, about one pair has the same number. Hash
-- indexes and partitions rely on `hashtext` as well, so an upgrade of the server keeps it. It takes a tenth of the time of md5.
create or replace function rag_term(word text) returns integer language sql immutable parallel safe
  return hashtext(word collate "C");
