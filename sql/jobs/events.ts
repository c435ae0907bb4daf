import type { ReadStatement } from '../reads/reader.ts'
import {
  buildRetainedCondition,
  ENDED_CONDITIONS,
  type JobRetention,
  VISIBLE_JOB_CONDITION,
  type Viewer,
  type VisibleJob,
} from './jobs.ts'
import { MAX_LIVE_JOBS } from './lists.ts'

/** Reads of the edge's streams: events, states and ends of jobs as lines, see `functions/job_event_line.sql`. */

/** Maximum events of one job per read. A subscriber that is further behind reads repeatedly. */
export const MAX_EVENTS_PER_READ = 500

/** Events of each job after its seq in `lastSeen`, at most `MAX_EVENTS_PER_READ` per job. */
export const readEventsAfter: ReadStatement<[ids: readonly string[], lastSeen: readonly number[]]> = {
  name: 'job_events_after',
  text: `select line from job_events_after($1::uuid[], $2::int[], ${MAX_EVENTS_PER_READ}) as line`,
}

/** Current states of jobs as event lines, in the order of the given ids. */
export const readCurrentStates: ReadStatement<[ids: readonly string[]]> = {
  name: 'job_states',
  text: 'select line from job_states($1::uuid[]) as line',
}

/** Current state of one job as an event line; no row if the caller cannot see the job. */
export const readVisibleState: ReadStatement<VisibleJob> = {
  name: 'job_visible_state',
  text: `select job_state_line(job) from job where ${VISIBLE_JOB_CONDITION} and job.id = $3::uuid and ${buildRetainedCondition('$4')}`,
}

/** Current states of jobs that the caller may see, as event lines behind the time of their end in ms and a tab. */
export const readVisibleStates: ReadStatement<[...Viewer, ids: readonly string[], retention: JobRetention]> =
  {
    name: 'job_visible_states',
    text: `
    select concat(extract(epoch from job.finished_at) * 1000, E'\\t', job_state_line(job)) from job
    where ${VISIBLE_JOB_CONDITION} and job.id = any($3::uuid[]) and ${buildRetainedCondition('$4')}`,
  }

/** Maximum number of ended jobs per visibility check. A subscriber that is further behind reads repeatedly. */
export const MAX_ENDED_PER_READ = 1000

type EndedJobIds<Selected extends ReadonlyArray<string | null | readonly string[] | readonly number[]>> =
  ReadStatement<[...Viewer, moment: number, after: string, ...selected: Selected]>

// Reads `limit` jobs of each condition, because each may have an index by end time.
const buildEndedJobIds = (conditions: readonly string[], isShown: string, limit: number): string => `
  select concat_ws(E'\\t', ended.id, extract(epoch from ended.finished_at) * 1000, ended.is_shown::int) from (
    ${conditions
      .map(
        (condition) => `(select job.id, job.finished_at, (${isShown}) as is_shown from job
        where ${condition} and job.finished_at >= to_timestamp($3::float8 / 1000)
          and (job.finished_at > to_timestamp($3::float8 / 1000) or job.id > $4::uuid)
        order by job.finished_at, job.id limit ${limit})`,
      )
      .join(' union all ')}) ended
  order by ended.finished_at, ended.id limit ${limit}`

/**
 * Jobs that ended after `moment` (ms since the epoch), or at `moment` with an id greater than `after`. Each line is
 * `id<tab>moment<tab>shown`. `shown` is 0 if the caller may not see the job, asks for another queue or task, or if its
 * retention has passed (null: none). Such jobs count towards the limit: there can be millions, and no statement on this
 * connection may take long.
 */
export const readEndedJobIds: EndedJobIds<
  [queue: string | null, task: string | null, retention: JobRetention | null]
> = {
  name: 'job_ended_ids',
  text: buildEndedJobIds(
    Object.values(ENDED_CONDITIONS),
    `${VISIBLE_JOB_CONDITION} and ($5::text is null or job.queue = $5::text) and ($6::text is null or job.name = $6::text)
      and (job_expires_at(job, $7::float8[]) > now()) is not false`,
    MAX_ENDED_PER_READ,
  ),
}

/** Maximum number of ended members per read. Each read sorts all members of the batch that ended since. */
export const MAX_ENDED_MEMBERS_PER_READ = 5000

/** Members of a batch that have ended, like {@link readEndedJobIds}. */
export const readEndedMemberIds: EndedJobIds<[batch: string]> = {
  name: 'job_ended_member_ids',
  text: buildEndedJobIds(['job.batch_id = $5::uuid'], VISIBLE_JOB_CONDITION, MAX_ENDED_MEMBERS_PER_READ),
}

/** Those of the given jobs that have ended, like {@link readEndedJobIds}. */
export const readEndedNamedIds: EndedJobIds<[ids: readonly string[]]> = {
  name: 'job_ended_named_ids',
  text: buildEndedJobIds(['job.id = any($5::uuid[])'], VISIBLE_JOB_CONDITION, MAX_ENDED_PER_READ),
}

/** Ids of the members of a batch that have not ended, at most as many as those of the stream of all jobs. */
export const readLiveMemberIds: ReadStatement<[...Viewer, batch: string]> = {
  name: 'job_live_member_ids',
  text: `
    select job.id from job where ${VISIBLE_JOB_CONDITION} and job.batch_id = $3::uuid and job.finished_at is null
    order by job.ordinal limit ${MAX_LIVE_JOBS}`,
}
