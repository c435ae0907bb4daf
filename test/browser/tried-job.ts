import { uuidv7 } from '../../sql/ids.ts'
import type { TestDatabase } from '../database.ts'

/**
 * Inserts a finished job with three attempts: the first failed, the second was interrupted, and the third succeeded.
 * The attempts waited 1.5 s, 20 ms and 5 ms, and ran 302 ms, 2.5 s and 40 ms. The job is a retry of the job `failed`,
 * which has no row.
 */
export async function insertTriedJob(
  query: TestDatabase['query'],
  ownerId: number,
  documentId: number,
): Promise<{ id: string; failed: string }> {
  const [id, failed] = [uuidv7(), uuidv7()]
  const payload = { documentId, force: true, sealedPassword: 'c2VjcmV0' }
  await query(
    `insert into job (id, name, queue, owner_id, mailbox, mailbox_limit, payload, status, label, progress_current, progress_total, seq,
       attempt, tries, max_tries, worker, run_at, result, retry_of, request_id, created_at, started_at, finished_at)
     select $1, 'documents.extract', 'documents', $2, 'document:' || $3, 1, $4, 'done', 'Page 9 of 9', 9, 9, 7, 3, 3, 3, 'mill/3',
       at + interval '10 s', '{"read": 9, "unread": 0, "skipped": 0}', $5, 'r-tried', at - interval '1.5 s', at, at + interval '10.045 s'
     from (select now() - interval '1 min' as at) moment`,
    [id, ownerId, documentId, JSON.stringify(payload), failed],
  )
  await query(
    `insert into job_event_row (job_id, seq, kind, data, created_at, attempt, ended)
     select $1, e.seq, 'status', jsonb_build_object('status', e.status, 'label', e.label, 'current', null, 'total', null),
       started_at + make_interval(secs => e.after), e.attempt, case when outcome is not null then jsonb_build_object('outcome', outcome,
         'worker', e.worker, 'code', code, 'detail', detail, 'due_at', started_at + make_interval(secs => due)) end
     from job, (values
       (2, 'queued', '', 0.302, 1, 'retry', 'mill/1', 'database.busy', 'The service is overloaded; try again shortly', -1.5),
       (3, 'running', '', 1.02, 2, null, null, null, null, null),
       (4, 'running', 'Opening the document', 1.5, null, null, null, null, null, null),
       (5, 'queued', 'Opening the document', 3.52, 2, 'interrupted', 'mill/2', null, null, 1),
       (6, 'running', 'Opening the document', 10.005, 3, null, null, null, null, null)
     ) as e(seq, status, label, after, attempt, outcome, worker, code, detail, due) where id = $1`,
    [id],
  )
  await query(
    `update job_event_row set ended = jsonb_strip_nulls(ended) where job_id = $1 and ended is not null`,
    [id],
  )
  return { id, failed }
}
