-- Finds an owner's words with the stem of a word, in the languages of the owner's texts. They are in English, and in
-- each language whose most frequent words they have. Related words have the same beginning, up to the last letter of the stem.
create or replace function search_stems(owner integer, term text) returns setof text language sql stable as $$
  select distinct known.word
  from search_languages()
    cross join lateral (select (ts_lexize(dictionary::regdictionary, term))[1]) stemmed (stem)
    cross join lateral (
      select word from search_word
      where owner_id = coalesce(owner, 0) and word >= left(stem, -1) collate "C" and word < (left(stem, -1) || U&'\+10FFFF') collate "C"
        and (ts_lexize(dictionary::regdictionary, word))[1] = stem
      limit 100) known
  where length(stem) >= 3 and (dictionary = 'english_stem' or (
    select count(*) >= 3 from search_word
    where owner_id = coalesce(owner, 0) and word = any(frequent)))
$$;
