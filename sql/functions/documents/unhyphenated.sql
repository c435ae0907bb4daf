-- A text whose words are whole that were divided at the ends of lines. What begins with a capital there is a word of its own.
create or replace function unhyphenated(given text) returns text language sql immutable parallel safe
  return case when given ~ '[-\u00ad\u2010]\n' then regexp_replace(given, '([[:alpha:]])[-\u00ad\u2010]\n\s*([[:lower:]])', '\1\2', 'g') else given end;
