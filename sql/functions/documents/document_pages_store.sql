-- Stores pages in the given order, each in a transaction of its own, as long as the attempt is the current one of its
-- job; `stored` is how many were stored. All but the last commit without waiting for the disk: the flush of the last
-- one covers them, and nobody is told about any page before it. The words of all pages are stored with the first page,
-- once each; a word whose page was lost in a crash finds nothing, and the next attempt stores the page.
create or replace procedure document_pages_store(inout stored integer, p_job uuid, p_attempt integer, p_document bigint,
  numbers integer[], statuses text[], methods text[], models text[], details text[], texts text[], images bytea[],
  widths integer[], heights integer[], givings_up boolean[])
language plpgsql as $$
declare
  last constant integer := cardinality(numbers);
  owner constant integer := (select owner_id from document where id = p_document);
  vectors constant tsvector[] := array(select page_vector(text) from unnest(texts) with ordinality given(text, n) order by n);
begin
  perform search_words_of(vectors);
  for i in 1 .. last loop
    if i < last then
      perform set_config('synchronous_commit', 'off', true);
    end if;
    -- Held until the commit: a takeover waits for it.
    exit when job_fence(p_job, p_attempt) is not true;
    insert into document_page (document_id, owner_id, page_number, status, method, model, detail, text, search, image, width, height,
      job_id, given_up)
    values (p_document, owner, numbers[i], statuses[i], methods[i], models[i], details[i], texts[i], vectors[i],
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
