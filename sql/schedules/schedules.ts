import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { buildRetainedCondition, type JobRetention } from '../jobs/jobs.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Statements of schedules. Their times are computed by `tasks/schedules/timing.ts`, from the database's clock. */

export const OVERLAPS = ['skip', 'queue'] as const
export const CATCH_UPS = ['none', 'last'] as const
/**
 * Reasons why a time adds no job. `account`: the owner is inactive. `task`: the task is unknown or refuses the arguments.
 * `quota`: the owner has too many waiting jobs.
 */
export const SKIP_REASONS = ['late', 'overlap', 'account', 'task', 'quota'] as const
export type SkipReason = (typeof SKIP_REASONS)[number]

/** The fields of a schedule that its owner chooses. */
export interface ScheduleFields {
  readonly name: string
  readonly task_name: string
  readonly queue_type: string
  readonly args: Readonly<Record<string, unknown>>
  readonly cron: string | null
  readonly every_seconds: number | null
  readonly time_zone: string
  readonly start_at: string | null
  readonly end_at: string | null
  readonly overlap: (typeof OVERLAPS)[number]
  readonly catch_up: (typeof CATCH_UPS)[number]
}

const LockedSchedule = z.object({
  id: z.string(),
  owner_id: z.number().nullable(),
  is_built_in: z.boolean(),
  name: z.string(),
  task_name: z.string(),
  queue_type: z.string(),
  args: z.record(z.string(), z.unknown()),
  cron: z.string().nullable(),
  every_seconds: z.number().nullable(),
  time_zone: z.string(),
  start_at: z.string().nullable(),
  end_at: z.string().nullable(),
  overlap: z.enum(OVERLAPS),
  catch_up: z.enum(CATCH_UPS),
  is_paused: z.boolean(),
  next_at: z.string().nullable(),
  created_at: z.string(),
  /** True if the last job has not ended. */
  is_busy: z.boolean(),
  /** True unless the owner's account is deactivated or deleted. */
  has_active_owner: z.boolean(),
  /** The database's time. */
  now: z.string(),
})
export type LockedSchedule = z.output<typeof LockedSchedule>

/**
 * Locks a schedule until the transaction ends. The row's lock comes before that of its mailbox. With a viewer, no row if
 * the schedule belongs to somebody else.
 */
export const lockSchedule = (
  id: string,
  viewer: { readonly ownerId: number | null; readonly isAdmin: boolean } | null,
): Query<LockedSchedule> =>
  sql.prepared('schedule_lock', LockedSchedule)`
    select s.id, s.owner_id, s.is_built_in, s.name, s.task_name, s.queue_type, s.args, s.cron, s.every_seconds, s.time_zone,
      iso(s.start_at) as start_at, iso(s.end_at) as end_at, s.overlap, s.catch_up, s.paused_at is not null as is_paused,
      iso(s.next_at) as next_at, iso(s.created_at) as created_at,
      exists (select from job where job.id = s.last_job_id and job.finished_at is null) as is_busy,
      s.owner_id is null or exists (select from account a where a.id = s.owner_id and a.is_active) as has_active_owner,
      iso(now()) as now
    from schedule s
    where s.id = ${id}::text and (${viewer === null || viewer.isAdmin}::boolean or s.owner_id = ${viewer?.ownerId ?? null}::int)
    for no key update of s`

/** Returns the database's time, at which the transaction began. */
export const readTime = (): Query<{ now: string }> =>
  sql.prepared('schedule_time', z.object({ now: z.string() }))`select iso(now()) as now`

/** Adds a schedule, created at the time of its transaction. */
export const insertSchedule = (
  id: string,
  ownerId: number | null,
  fields: ScheduleFields,
  nextAt: string,
): Query<unknown> =>
  sql.type(noRows)`
    insert into schedule (id, owner_id, name, task_name, queue_type, args, cron, every_seconds, time_zone, start_at, end_at,
      overlap, catch_up, next_at)
    select ${id}, ${ownerId}::int, name, task_name, queue_type, args, cron, every_seconds, time_zone, start_at, end_at, overlap,
      catch_up, ${nextAt}::timestamptz
    from jsonb_populate_record(null::schedule, ${JSON.stringify(fields)}::jsonb)`

/** Changes the chosen fields and the next time of a locked schedule. */
export const updateSchedule = (id: string, fields: ScheduleFields, nextAt: string | null): Query<unknown> =>
  sql.type(noRows)`
    update schedule s set name = given.name, task_name = given.task_name, queue_type = given.queue_type, args = given.args,
      cron = given.cron, every_seconds = given.every_seconds, time_zone = given.time_zone, start_at = given.start_at,
      end_at = given.end_at, overlap = given.overlap, catch_up = given.catch_up, next_at = ${nextAt}::timestamptz,
      updated_at = now()
    from jsonb_populate_record(null::schedule, ${JSON.stringify(fields)}::jsonb) given where s.id = ${id}`

export const deleteSchedule = (id: string): Query<unknown> =>
  sql.type(noRows)`delete from schedule where id = ${id}`

/** Pauses a locked schedule. */
export const pauseSchedule = (id: string, by: number | null): Query<unknown> =>
  sql.type(noRows)`
    update schedule set paused_at = now(), paused_by = ${by}::int, next_at = null where id = ${id}`

/** Resumes a locked schedule. `nextAt` is null if it has no time ahead. */
export const resumeSchedule = (id: string, nextAt: string | null): Query<unknown> =>
  sql.type(noRows)`
    update schedule set paused_at = null, paused_by = null, next_at = ${nextAt}::timestamptz where id = ${id}`

/** Number of runs whose jobs a schedule remembers. */
const MAX_RECENT_JOBS = 20

// A run that joins the job of the run before adds no entry.
const appendRecentJob = (jobId: string | null) => sql.fragment`
  case when ${jobId}::uuid is null or ${jobId}::uuid = any(recent_job_ids) then recent_job_ids
    else (recent_job_ids || ${jobId}::uuid)[greatest(1, cardinality(recent_job_ids) + 2 - ${MAX_RECENT_JOBS}::int):] end`

/** Stores the job that a schedule has added or joined. */
export const storeScheduleRun = (id: string, jobId: string): Query<unknown> =>
  sql.type(
    noRows,
  )`update schedule set last_job_id = ${jobId}::uuid, recent_job_ids = ${appendRecentJob(jobId)}, last_run_at = now() where id = ${id}`

/** The outcome of one time of a schedule: its job, or the reason for which it has none. */
export type TimeOutcome = { readonly jobId: string } | { readonly skip: SkipReason; readonly at: string }

/** Stores the outcome of a time of a locked schedule, and the next time. */
export const advanceSchedule = (
  id: string,
  nextAt: string | null,
  cron: string | null,
  outcome: TimeOutcome,
): Query<unknown> => {
  const [jobId, skip, at] =
    'jobId' in outcome ? [outcome.jobId, null, null] : [null, outcome.skip, outcome.at]
  return sql.prepared('schedule_advance', noRows)`
    update schedule set next_at = ${nextAt}::timestamptz, cron = ${cron}::text,
      last_job_id = coalesce(${jobId}::uuid, last_job_id), recent_job_ids = ${appendRecentJob(jobId)},
      last_run_at = case when ${jobId}::uuid is null then last_run_at else now() end,
      last_skipped_at = coalesce(${at}::timestamptz, last_skipped_at), last_skip_reason = coalesce(${skip}::text, last_skip_reason)
    where id = ${id}::text`
}

/** A schedule and its next time. */
export interface NextTime {
  readonly id: string
  readonly next_at: string
}

const NextTimeRow = z.object({ id: z.string(), next_at: z.string() })

/** A declared schedule and its next time, which is used if it was added or changed. */
export interface BuiltInSchedule extends NextTime {
  readonly cron: string
  readonly task_name: string
  readonly queue_type: string
}

/**
 * Adds the built-in schedules that are missing, and applies changed declarations. Returns the next time of each schedule
 * that it has added or changed, unless it is paused.
 */
export const storeBuiltIns = (declared: readonly BuiltInSchedule[]): Query<NextTime> =>
  sql.type(NextTimeRow)`
    with stored as (
      insert into schedule as s (id, is_built_in, name, task_name, queue_type, args, cron, time_zone, overlap, catch_up, next_at)
      select id, true, id, task_name, queue_type, '{}', cron, 'UTC', 'skip', 'none', next_at
      from jsonb_to_recordset(${JSON.stringify(declared)}::jsonb)
        as given(id text, cron text, task_name text, queue_type text, next_at timestamptz)
      order by id collate "C"
      on conflict on constraint schedule_pkey do update set cron = excluded.cron, task_name = excluded.task_name,
        queue_type = excluded.queue_type, next_at = case when s.paused_at is null then excluded.next_at end, updated_at = now()
      where (s.cron, s.task_name, s.queue_type) is distinct from (excluded.cron, excluded.task_name, excluded.queue_type)
      returning id, next_at
    )
    select id, iso(next_at) as next_at from stored where next_at is not null`

// A job that is a message of schedule `s`. Each branch has the words of an index's predicate.
const HAS_MESSAGE = sql.fragment`(
  exists (select from job where job.mailbox = 'schedule:' || s.id and job.status in ('waiting', 'scheduled', 'available'))
  or exists (select from job where job.mailbox = 'schedule:' || s.id and job.lease_id is not null and job.mailbox_limit is not null))`

/**
 * Locks and returns up to `max` schedules whose time has passed by more than `graceMs` without a message. An admin may
 * have cancelled the message, or it has failed.
 */
export const findLostSchedules = (graceMs: number, max: number): Query<NextTime> =>
  sql.prepared('schedule_lost', NextTimeRow)`
    select s.id, iso(s.next_at) as next_at from schedule s
    where s.next_at < now() - make_interval(secs => ${graceMs / 1000}::float8) and not ${HAS_MESSAGE}
    order by s.next_at limit ${max}::int for no key update skip locked`

/** Returns the messages of a schedule that no worker has claimed. */
export const listMessages = (id: string): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    select id from job where mailbox = ${`schedule:${id}`} and status in ('waiting', 'scheduled', 'available')`

/** The JSON of a schedule `s`, without its next times and without its last job. */
const SCHEDULE_FIELDS = `'id', s.id, 'owner_id', s.owner_id, 'is_built_in', s.is_built_in, 'name', s.name,
  'task_name', s.task_name, 'queue_type', s.queue_type, 'args', s.args, 'cron', s.cron, 'every_seconds', s.every_seconds,
  'time_zone', s.time_zone, 'start_at', iso(s.start_at), 'end_at', iso(s.end_at), 'overlap', s.overlap, 'catch_up', s.catch_up,
  'paused_at', iso(s.paused_at), 'paused_by', s.paused_by, 'next_run_at', iso(s.next_at), 'last_run_at', iso(s.last_run_at),
  'last_skip', case when s.last_skipped_at is not null
    then json_build_object('at', iso(s.last_skipped_at), 'reason', s.last_skip_reason) end,
  'created_at', iso(s.created_at), 'updated_at', iso(s.updated_at)`

const buildScheduleJson = (job: string, retention: string): string => `json_build_object(${SCHEDULE_FIELDS},
  'last_job', case when ${job}.id is not null then json_build_object('job_id', ${job}.id, 'status', job_client_status(${job}.status),
    'error', case when ${job}.error_code is not null then json_build_object('code', ${job}.error_code, 'detail', ${job}.error_detail) end,
    'finished_at', iso(${job}.finished_at)) end,
  'recent_jobs', (select coalesce(json_agg(json_build_object('job_id', recent.id, 'status', job_client_status(recent.status),
      'created_at', iso(recent.created_at)) order by listed.ordinality), '[]')
    from unnest(s.recent_job_ids) with ordinality listed(id, ordinality) join job recent on recent.id = listed.id
    where ${buildRetainedCondition(retention, 'recent')}))`

const joinLastJob = (retention: string): string =>
  `left join job on job.id = s.last_job_id and ${buildRetainedCondition(retention)}`

export const SCHEDULE_ORDER = { 's.created_at': 'timestamptz', 's.id': 'text' } as const

const buildScheduleList = (where: string): string =>
  buildArrayText({
    table: 'schedule',
    row: 's',
    parameters: 2,
    where,
    order: SCHEDULE_ORDER,
    direction: 'asc',
    hasPageNumbers: false,
    join: joinLastJob('$1'),
    item: buildScheduleJson('job', '$1'),
  })

type ScheduleList = ReadStatement<[retention: JobRetention, owner: number | null, ...PageValues]>

/** Schedules of an account ($2), or all of them. $1 is the time for which ended jobs are shown. */
export const readSchedules: Readonly<Record<'own' | 'all', ScheduleList>> = {
  own: { name: 'schedules_own', text: buildScheduleList('s.owner_id = $2::int') },
  all: { name: 'schedules_all', text: buildScheduleList('$2::int is null or true') },
}

/** A schedule. No row if the caller ($2, an admin if $3) must not see it. */
export const readSchedule: ReadStatement<
  [id: string, owner: number | null, isAdmin: boolean, retention: JobRetention]
> = {
  name: 'schedule',
  text: `select ${buildScheduleJson('job', '$4')}::text from schedule s ${joinLastJob('$4')}
    where s.id = $1::text and ($3::boolean or s.owner_id = $2::int)`,
}
