-- Returns the languages that have stems, each with its dictionary and some of its most frequent words.
create or replace function search_languages() returns table (dictionary text, frequent text[]) language sql immutable parallel safe as $$
  values ('english_stem', '{the,and,for,that,with}'::text[]), ('german_stem', '{der,und,die,nicht,mit}'),
    ('french_stem', '{les,des,est,une,pour}'), ('spanish_stem', '{los,del,una,para,con}'), ('italian_stem', '{della,che,non,per,sono}'),
    ('portuguese_stem', '{uma,nao,para,dos,com}'), ('dutch_stem', '{het,een,van,niet,voor}'), ('swedish_stem', '{och,att,som,det,inte}'),
    ('danish_stem', '{det,som,til,ikke,med}'), ('norwegian_stem', '{det,som,til,ikke,med}'), ('finnish_stem', '{ette,ovat,myos,joka,mutta}'),
    ('hungarian_stem', '{egy,hogy,nem,meg,van}'), ('romanian_stem', '{este,care,pentru,din,sunt}'), ('russian_stem', '{что,как,это,для,или}'),
    ('turkish_stem', '{bir,icin,ile,olan,gibi}')
$$;
