-- Finds an owner's words with the stem of a word, in the languages of the owner's texts. They are in English, and in
-- each language whose most frequent words they have. Related words have the same beginning, up to the last letter of the stem.
create or replace function search_stems(owner integer, term text) returns setof text language sql stable as $$
  select distinct known.word
  from (values ('english_stem', '{the,and,for,that,with}'), ('german_stem', '{der,und,die,nicht,mit}'),
      ('french_stem', '{les,des,est,une,pour}'), ('spanish_stem', '{los,del,una,para,con}'), ('italian_stem', '{della,che,non,per,sono}'),
      ('portuguese_stem', '{uma,nao,para,dos,com}'), ('dutch_stem', '{het,een,van,niet,voor}'), ('swedish_stem', '{och,att,som,det,inte}'),
      ('danish_stem', '{det,som,til,ikke,med}'), ('norwegian_stem', '{det,som,til,ikke,med}'), ('finnish_stem', '{ette,ovat,myos,joka,mutta}'),
      ('hungarian_stem', '{egy,hogy,nem,meg,van}'), ('romanian_stem', '{este,care,pentru,din,sunt}'), ('russian_stem', '{что,как,это,для,или}'),
      ('turkish_stem', '{bir,icin,ile,olan,gibi}')) language (dictionary, frequent)
    cross join lateral (select (ts_lexize(dictionary::regdictionary, term))[1]) stemmed (stem)
    cross join lateral (
      select word from search_word
      where owner_id = coalesce(owner, 0) and word >= left(stem, -1) collate "C" and word < (left(stem, -1) || U&'\+10FFFF') collate "C"
        and (ts_lexize(dictionary::regdictionary, word))[1] = stem
      limit 100) known
  where length(stem) >= 3 and (dictionary = 'english_stem' or (
    select count(*) >= 3 from search_word
    where owner_id = coalesce(owner, 0) and word = any(frequent::text[])))
$$;
