create or replace function search_words_of(vectors tsvector[]) returns void language sql as $$
  insert into search_word (word)
  select distinct lexeme from unnest(vectors) vector, unnest(vector) where length(lexeme) <= 100 order by 1
  on conflict do nothing
$$;
