-- Pages that are drawn when somebody asks for their picture, stored in order and each on its own, and given up for good.

-- A size without an image is a picture that has not been drawn yet.
alter table document_page drop constraint document_page_image_check;
alter table document_page add constraint document_page_size_check check ((width is null) = (height is null));
alter table document_page add constraint document_page_image_check check (image is null or width is not null);

-- Reading it crashed again and again, or went over its budget: only a forced extraction tries it again.
alter table document_page add column given_up boolean not null default false;
alter table document_page add constraint document_page_given_up_check check (status = 'unread' or not given_up);

/*
 * Stores pages in the order given, each in a transaction of its own, as long as the attempt is the running one of its
 * job; `stored` says how many were. All but the last commit without waiting for the disk: the last one's flush is
 * theirs as well, and nobody has been told of any before it.
 */
create procedure document_pages_store(inout stored integer, p_job uuid, p_attempt integer, p_document integer,
  numbers integer[], statuses text[], methods text[], models text[], details text[], texts text[], images bytea[],
  widths integer[], heights integer[], givings_up boolean[])
language plpgsql as $$
declare
  last constant integer := cardinality(numbers);
begin
  for i in 1 .. last loop
    if i < last then
      perform set_config('synchronous_commit', 'off', true);
    end if;
    -- Held until the commit: a take-over waits for it.
    perform from job where id = p_job and attempt = p_attempt and status = 'running' for share;
    exit when not found;
    insert into document_page (document_id, page_number, status, method, model, detail, text, image, width, height, job_id, given_up)
    values (p_document, numbers[i], statuses[i], methods[i], models[i], details[i], texts[i], nullif(images[i], ''), widths[i],
      heights[i], p_job, givings_up[i])
    on conflict (document_id, page_number) do update set
      status = excluded.status, method = excluded.method, model = excluded.model, detail = excluded.detail,
      text = excluded.text, image = excluded.image, width = excluded.width, height = excluded.height,
      job_id = excluded.job_id, given_up = excluded.given_up, updated_at = now();
    commit;
    stored := i;
  end loop;
end
$$;
