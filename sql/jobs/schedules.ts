import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { buildRetainedCondition, type JobRetention, type JobSpec } from './jobs.ts'

/** State of schedule entries: their pause and their last job. `tasks/schedule.ts` declares the entries. */

const AddedJob = z.object({ job_id: z.string() })

/**
 * Adds the job of an entry and records it as the entry's last job. If an earlier job of the entry has not ended,
 * records that job instead of adding one. No row and no job if the entry is paused, unless `ignorePause` is set.
 */
export const runScheduleEntry = (
  identifier: string,
  job: JobSpec,
  ignorePause: boolean,
): Query<{ job_id: string }> =>
  sql.prepared('schedule_run', AddedJob)`
    with added as (
      select job_id from job_enqueue(case when ${ignorePause}::boolean or not exists (
        select from schedule_control where identifier = ${identifier}::text and paused_at is not null)
        then ${JSON.stringify([job])}::jsonb else '[]' end)
    )
    insert into schedule_control (identifier, last_job_id, last_run_at) select ${identifier}::text, job_id, now() from added
    on conflict (identifier) do update set last_job_id = excluded.last_job_id, last_run_at = excluded.last_run_at
    returning last_job_id as job_id`

/** Pauses an entry. If it is already paused, changes nothing, so the first time and account are kept. */
export const pauseScheduleEntry = (identifier: string, by: number | null): Query<unknown> =>
  sql.type(noRows)`
    insert into schedule_control as control (identifier, paused_at, paused_by) values (${identifier}, now(), ${by}::int)
    on conflict (identifier) do update set paused_at = excluded.paused_at, paused_by = excluded.paused_by
    where control.paused_at is null`

/** Resumes an entry; changes no row if the entry is not paused. */
export const resumeScheduleEntry = (identifier: string): Query<unknown> =>
  sql.type(noRows)`
    update schedule_control set paused_at = null, paused_by = null where identifier = ${identifier} and paused_at is not null`

/** A declared entry. Its next run is shown only if the entry is not paused. */
export interface ScheduleEntry {
  readonly name: string
  readonly cron: string
  readonly task: string
  readonly queue: string
  readonly next_run_at: string
}

type Entries = [entries: string, retention: JobRetention]

const SCHEDULE_JSON = `json_build_object('name', entry.name, 'cron', entry.cron, 'task', entry.task, 'queue', entry.queue,
  'paused_at', iso(control.paused_at), 'paused_by', control.paused_by,
  'next_run_at', case when control.paused_at is null then iso(entry.next_run_at) end,
  'last_run_at', iso(control.last_run_at),
  'last_job', case when job.id is not null then json_build_object('job_id', job.id, 'status', job_client_status(job.status),
    'error', case when job.error_code is not null then json_build_object('code', job.error_code, 'detail', job.error_detail) end,
    'finished_at', iso(job.finished_at)) end)`

const ENTRIES_JOIN = `jsonb_to_recordset($1::jsonb) as entry(name text, cron text, task text, queue text, next_run_at timestamptz)
  left join schedule_control control on control.identifier = entry.name
  left join job on job.id = control.last_job_id and ${buildRetainedCondition('$2')}`

/** Entries with their state, sorted by name. `entries` is a JSON array of {@link ScheduleEntry}. */
export const readSchedules: ReadStatement<Entries> = {
  name: 'schedules',
  text: `select coalesce(json_agg(${SCHEDULE_JSON} order by entry.name collate "C"), '[]')::text from ${ENTRIES_JOIN}`,
}

/** State of a single entry; `entries` has one element. */
export const readSchedule: ReadStatement<Entries> = {
  name: 'schedule',
  text: `select ${SCHEDULE_JSON}::text from ${ENTRIES_JOIN}`,
}
