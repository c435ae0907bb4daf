create or replace function quoted_lexeme(word text) returns text language sql immutable parallel safe
  return '''' || replace(replace(word, '\', '\\'), '''', '''''') || '''';
