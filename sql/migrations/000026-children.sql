-- Files are read in child processes, which can be killed: a page takes no worker with it any more, and nobody has to note
-- which ones were in hand when one died.
drop table document_page_try;

-- Tasks that wait for them.
alter table job drop constraint job_lane_check;
alter table job add constraint job_lane_check check (lane in ('io', 'cpu', 'children', 'model'));
