-- Joins words that were hyphenated at line ends. A second part that starts with a capital is a word of its own and
-- stays separate.
create or replace function join_hyphenated(content text) returns text language sql immutable parallel safe
  return case when content ~ '[-\u00ad\u2010]\n'
    then regexp_replace(content, '([[:alpha:]])[-\u00ad\u2010]\n\s*([[:lower:]])', '\1\2', 'g')
    else content end;
