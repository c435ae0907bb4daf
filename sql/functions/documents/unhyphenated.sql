-- Joins words that were hyphenated at line ends. A second part with a capital is a word of its own and stays separate.
create or replace function unhyphenated(given text) returns text language sql immutable parallel safe
  return case when given ~ '[-\u00ad\u2010]\n' then regexp_replace(given, '([[:alpha:]])[-\u00ad\u2010]\n\s*([[:lower:]])', '\1\2', 'g') else given end;
