-- Several pages stored by one call share what their indexing costs, and still commit each on its own.

drop trigger search_words_inserted on document_page;
drop trigger search_words_updated on document_page;
drop procedure document_pages_store(integer, uuid, integer, integer, integer[], text[], text[], text[], text[], text[],
  bytea[], integer[], integer[], boolean[]);
alter table document_page alter column search drop expression;

create function search_words_of(vectors tsvector[]) returns void language sql as $$
  insert into search_word (word)
  select distinct lexeme from unnest(vectors) vector, unnest(vector) where length(lexeme) <= 100 order by 1
  on conflict do nothing
$$;

-- Whoever writes a page's text without its vector gets it, and its words, from here.
create function page_indexed() returns trigger language plpgsql as $$
begin
  new.search := page_vector(new.text);
  perform search_words_of(array[new.search]);
  return new;
end $$;
create trigger page_indexed_insert before insert on document_page
  for each row when (new.search is null) execute function page_indexed();
create trigger page_indexed_update before update of text on document_page
  for each row when (new.search is not distinct from old.search and new.text <> old.text) execute function page_indexed();

/*
 * Stores pages in the order given, each in a transaction of its own, as long as the attempt is the running one of its
 * job; `stored` says how many were. All but the last commit without waiting for the disk: the last one's flush is
 * theirs as well, and nobody has been told of any before it. The words of all of them are noted with the first page,
 * once each; a word that no page holds after a crash finds nothing, and the next attempt brings the page.
 */
create procedure document_pages_store(inout stored integer, p_job uuid, p_attempt integer, p_document integer,
  numbers integer[], statuses text[], methods text[], models text[], details text[], texts text[], images bytea[],
  widths integer[], heights integer[], givings_up boolean[])
language plpgsql as $$
declare
  last constant integer := cardinality(numbers);
  vectors constant tsvector[] := array(select page_vector(text) from unnest(texts) with ordinality given(text, n) order by n);
begin
  perform search_words_of(vectors);
  for i in 1 .. last loop
    if i < last then
      perform set_config('synchronous_commit', 'off', true);
    end if;
    -- Held until the commit: a take-over waits for it.
    perform from job where id = p_job and attempt = p_attempt and status = 'running' for share;
    exit when not found;
    insert into document_page (document_id, page_number, status, method, model, detail, text, search, image, width, height,
      job_id, given_up)
    values (p_document, numbers[i], statuses[i], methods[i], models[i], details[i], texts[i], vectors[i],
      nullif(images[i], ''), widths[i], heights[i], p_job, givings_up[i])
    on conflict (document_id, page_number) do update set
      status = excluded.status, method = excluded.method, model = excluded.model, detail = excluded.detail,
      text = excluded.text, search = excluded.search, image = excluded.image, width = excluded.width,
      height = excluded.height, job_id = excluded.job_id, given_up = excluded.given_up, updated_at = now();
    commit;
    stored := i;
  end loop;
end
$$;
