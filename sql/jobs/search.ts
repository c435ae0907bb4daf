import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import { cursorOf } from '../lists.ts'
import type { ReadStatement } from '../reader.ts'

/** Jobs by what they are like, for admins: looked for among the latest ones, a bounded number at a time. */

/** Which jobs are meant; what is absent may be anything. */
export interface JobFilter {
  readonly status?: string | undefined
  readonly queue?: string | undefined
  readonly task?: string | undefined
  /** The code of the error that it failed with. */
  readonly code?: string | undefined
  readonly owner_id?: number | undefined
  readonly request_id?: string | undefined
  /** When it was added: from this time on, and before that. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** When it ended: from this time on, and until that. */
  readonly ended_from?: string | undefined
  readonly ended_before?: string | undefined
  /** A part of the label or of the error's text, in either case. */
  readonly search?: string | undefined
}

// How many jobs a page looks through: 0.1 s.
const MOST_LOOKED = 100_000
const MOST_FAILURES = 200_000

const ROW = `json_build_object('job_id', job.id, 'name', job.name, 'queue', job.queue, 'owner_id', job.owner_id,
  'status', job.status, 'label', job.label, 'attempts', job.attempt, 'request_id', job.request_id,
  'error', case when job.error_code is not null then json_build_object('code', job.error_code, 'detail', job.error_detail) end,
  'created_at', iso(job.created_at), 'due_at', case when job.status = 'queued' and job.run_at > now() then iso(job.run_at) end,
  'started_at', iso(job.started_at), 'finished_at', iso(job.finished_at),
  'retried_by', (select again.id from job again where again.retry_of = job.id))`

/** A cursor of the found jobs: the ids are in the order in which jobs were added. */
export const FOUND_ORDER = { id: 'uuid' } as const

type Found = ReadStatement<[filter: string, after: string | null, limit: number]>

/**
 * Jobs of a filter, the latest first or the oldest first: the cursor of what follows, or an empty line, and a JSON array. A
 * page may have fewer jobs than asked for, or none, and a cursor: then it has looked at as many as it may.
 */
export const readFound: Readonly<Record<'desc' | 'asc', Found>> = { desc: found('desc'), asc: found('asc') }

function found(direction: 'desc' | 'asc'): Found {
  const beyond = direction === 'desc' ? '<' : '>'
  return {
    name: `jobs_found_${direction}`,
    text: `
      with looked as (
        select id from job where $2::jsonb is null or id ${beyond} ($2::jsonb ->> 0)::uuid order by id ${direction} limit ${MOST_LOOKED}
      ), fitting as (
        select job.* from looked cross join lateral (
          select job.* from job where job.id = looked.id and job_matches(job, $1::jsonb) offset 0) job
        limit $3::int + 1
      ), shown as (select * from fitting order by id ${direction} limit $3::int)
      select concat(
        case when (select count(*) from fitting) > $3::int then (select ${cursorOf(['id'])} from (select id from shown order by id ${direction === 'desc' ? 'asc' : 'desc'} limit 1) last)
          when (select count(*) from looked) = ${MOST_LOOKED} then (select ${cursorOf(['id'])} from (select id from looked order by id ${direction === 'desc' ? 'asc' : 'desc'} limit 1) last) end,
        E'\\n', (select coalesce(json_agg(${ROW} order by job.id ${direction}), '[]') from shown job))`,
  }
}

/**
 * Failed jobs by task and code, most first: of the last 200,000 failures, those of a filter that ended in the last `seconds`.
 * `history` counts them by twenty-fourths of that time. JSON.
 */
export const readFailures: ReadStatement<[filter: string, seconds: number]> = {
  name: 'job_failures',
  text: `
    with failed as (
      select job.* from (
        select id from job where status = 'failed' and finished_at > now() - make_interval(secs => $2::float8)
        order by finished_at desc, ordinal desc limit ${MOST_FAILURES}) latest
      cross join lateral (select job.* from job where job.id = latest.id and job_matches(job, $1::jsonb) offset 0) job
    ), spans as (
      select name, queue, error_code, least(23, floor(extract(epoch from finished_at - (now() - make_interval(secs => $2::float8))) / ($2::float8 / 24))::int) as span,
        count(*) as jobs, count(again.id) as retried, min(finished_at) as first_at, max(finished_at) as last_at,
        (array_agg(failed.id order by finished_at desc))[1] as last_id
      from failed left join lateral (select again.id from job again where again.retry_of = failed.id) again on true
      group by name, queue, error_code, span
    ), groups as (
      select name, queue, error_code, sum(jobs) as jobs, sum(retried) as retried, min(first_at) as first_at, max(last_at) as last_at,
        (array_agg(last_id order by last_at desc))[1] as last_id, json_object_agg(span, jobs) as history
      from spans group by name, queue, error_code
    )
    select json_build_object('at', iso(now()), 'span_seconds', $2::float8 / 24, 'groups', coalesce(json_agg(json_build_object('task', name,
      'queue', queue, 'code', error_code, 'jobs', jobs, 'retried', retried, 'first_at', iso(first_at), 'last_at', iso(last_at),
      'last_job_id', last_id, 'last_detail', (select error_detail from job where id = last_id),
      'history', array(select coalesce((history ->> span::text)::int, 0) from generate_series(0, 23) span))
      order by jobs desc, name, error_code), '[]'))::text from groups`,
}

/** How many jobs one action is for. */
export const MOST_IN_BULK = 100_000

const Id = z.object({ id: z.string() })
type Status = 'queued' | 'running' | 'done' | 'failed' | 'cancelled'

/** Jobs of a filter in one of some states that were added before another job. */
export interface Meant {
  readonly filter: JobFilter
  readonly states: readonly Status[]
  readonly before: string
  /** Only those that were not retried. */
  readonly unretried: boolean
  /** Only these. */
  readonly only?: readonly string[] | undefined
}

const meant = ({ filter, states, before, unretried, only }: Meant) => sql.fragment`
  ${only === undefined ? sql.fragment`true` : sql.fragment`job.id = any(${sql.array(only, 'uuid')})`} and
  job.id < ${before}::uuid and job.status = any(${sql.array(states, 'text')}) and job_matches(job, ${JSON.stringify(filter)}::jsonb)
  and (not ${unretried} or not exists (select from job again where again.retry_of = job.id))`

/** How many they are, at most `most`, and the time of the database. */
export const countMeant = (which: Meant, most: number): Query<{ count: number; now: string }> =>
  sql.type(z.object({ count: z.number(), now: z.string() }))`
    select count(*)::int as count, now()::text as now from (select from job where ${meant(which)} limit ${most}) meant`

/** Their ids, in the order in which they were added, after one of them. */
export const idsMeant = (which: Meant, after: string | null, limit: number): Query<{ id: string }> =>
  sql.type(Id)`
    select id from job where ${meant(which)} and (${after}::uuid is null or id > ${after}::uuid) order by id limit ${limit}`

/** Deletes those of some jobs that have ended; a row for each. */
export const deleteEnded = (ids: readonly string[]): Query<{ id: string }> =>
  sql.type(
    Id,
  )`delete from job where id = any(${sql.array(ids, 'uuid')}) and finished_at is not null returning id`
