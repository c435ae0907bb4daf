import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { readWithin, type Transaction } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { enqueueJobs, readJob } from '../../../sql/jobs/jobs.ts'
import { requireQuota } from '../../../sql/quotas/quotas.ts'
import {
  deleteSchedule,
  insertSchedule,
  type LockedSchedule,
  lockSchedule,
  pauseSchedule,
  readSchedule,
  readSchedules,
  readTime,
  resumeSchedule,
  SCHEDULE_ORDER,
  type ScheduleFields,
  storeScheduleRun,
  updateSchedule,
} from '../../../sql/schedules/schedules.ts'
import { buildScheduledJob, findEntry } from '../../../tasks/schedules/job.ts'
import { replaceMessage } from '../../../tasks/schedules/message.ts'
import { findNextTime, listNextTimes, type Timing } from '../../../tasks/schedules/timing.ts'
import { type DeclaredTasks, requireTask } from '../../../tasks/worker-queues/declared.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { parseAt } from '../../pipeline/request/input.ts'
import { answerArray, buildCursorSchema } from '../../pipeline/request/lists.ts'
import { count } from '../../pipeline/request/schemas.ts'
import {
  type Answer,
  answerCompactJson,
  answerJson,
  area,
  type Input,
  route,
  type Writes,
} from '../../pipeline/route.ts'
import { appendAuditEvent, type EventRequest } from '../../pipeline/write/audit.ts'
import { findDeclaredTasks } from '../declared-tasks.ts'
import { buildJobReadParameters, isAdmin, Job } from '../jobs/shapes.ts'
import { NewSchedule, Schedule, ScheduleChange, ScheduleParams, SHOWN_TIMES } from './shapes.ts'

const TASK_ERRORS = ['task.unknown', 'task.unknown_queue', 'worker_queue.undeclared'] as const

/** Routes of schedules. Workers run them, see `tasks/schedules/run.work.ts`. */
export const schedules = area('schedules', '/api/v1/schedules', { auth: 'user' }, [
  route({
    method: 'post',
    path: '',
    summary: 'Create a schedule',
    description: `Adds a job of a task at each of its times, which belongs to the account. The times are those of \`cron\` in \
\`time_zone\`, or an interval of \`every_seconds\`. \`task_name\`, \`queue_type\` and \`args\` are those of \`/api/v1/tasks/enqueue\`.`,
    body: NewSchedule,
    response: Schedule,
    status: 201,
    errors: ['quota.schedules', 'schedule.never', ...TASK_ERRORS],
    sideEffect: true,
    handle: async (input) => {
      const { body, caller, edge, transaction } = input
      const fields: ScheduleFields = {
        ...body,
        cron: body.cron ?? null,
        every_seconds: body.every_seconds ?? null,
        start_at: toTimestamp(body.start_at),
        end_at: toTimestamp(body.end_at),
      }
      await requireArguments(edge, caller, fields)
      return transaction(async (tx) => {
        const id = uuidv7()
        const { now } = await tx.one(readTime())
        const nextAt = requireNextTime({ ...fields, created_at: now }, now)
        await tx.run(insertSchedule(id, caller.ownerId, fields, nextAt))
        await requireQuota(tx, caller.ownerId, ['schedules'], edge.settings.quotas)
        await replaceMessage(tx, id, nextAt, edge.settings)
        await tx.run(auditSchedule(input, 'schedule.created', { id, owner_id: caller.ownerId }, body))
        return answerSchedule(tx, input, id)
      })
    },
  }),

  route({
    method: 'get',
    path: '',
    summary: 'List schedules, oldest first',
    description: 'Lists those of the caller; for admins all, of which the built-in ones come first.',
    query: z.object({
      limit: count({ min: 1, max: 100, fallback: 100 }),
      cursor: buildCursorSchema(SCHEDULE_ORDER),
    }),
    response: z.array(Schedule),
    reads: 'list',
    handle: async ({ query, caller, edge, reader, request }) => {
      const statement = isAdmin(caller) ? readSchedules.all : readSchedules.own
      const text = await reader.text(statement, [
        edge.settings.jobRetention,
        caller.ownerId,
        query.cursor ?? null,
        0,
        query.limit,
      ])
      return answerArray(text!, request, (items) =>
        JSON.stringify((JSON.parse(items) as StoredSchedule[]).map(addNextRuns)),
      )
    },
  }),

  route({
    method: 'get',
    path: '/:schedule_id',
    summary: 'Get a schedule',
    params: ScheduleParams,
    response: Schedule,
    errors: ['schedule.missing'],
    handle: async ({ params, caller, edge }) =>
      answerStored(
        await edge.reader.text(readSchedule, buildReadParameters(edge, caller, params.schedule_id)),
      ),
  }),

  route({
    method: 'patch',
    path: '/:schedule_id',
    summary: 'Update a schedule',
    description: `A change of its times takes effect from now on. A value for \`cron\` or \`every_seconds\` clears the other; \
null clears \`start_at\` and \`end_at\`.`,
    params: ScheduleParams,
    body: ScheduleChange,
    response: Schedule,
    errors: ['schedule.missing', 'schedule.built_in', 'schedule.never', ...TASK_ERRORS],
    handle: (input) => changeFields(input),
  }),

  route({
    method: 'delete',
    path: '/:schedule_id',
    summary: 'Delete a schedule',
    description: 'Jobs that it has added continue.',
    params: ScheduleParams,
    errors: ['schedule.missing', 'schedule.built_in'],
    handle: (input) =>
      withSchedule(input, async (tx, schedule) => {
        const { id } = schedule
        // An earlier version may have left a schedule that no longer exists in this one.
        if (schedule.is_built_in && findEntry(id) !== undefined) throw fail('schedule.built_in')
        await tx.run(deleteSchedule(id))
        await replaceMessage(tx, id, null, input.edge.settings)
        await tx.run(auditSchedule(input, 'schedule.deleted', schedule))
        return undefined
      }),
  }),

  route({
    method: 'post',
    path: '/:schedule_id/run',
    summary: 'Run a schedule now',
    description:
      'Returns the job that it adds, or the unfinished job that it joins. A paused schedule also runs, and stays paused.',
    params: ScheduleParams,
    response: Job,
    status: 202,
    errors: ['schedule.missing', 'job.missing', 'quota.waiting_jobs', ...TASK_ERRORS],
    sideEffect: true,
    handle: (input) => runNow(input),
  }),

  route({
    method: 'post',
    path: '/:schedule_id/pause',
    summary: 'Pause a schedule',
    description:
      'It adds no job until it is resumed; jobs that it has added continue. Pausing a paused schedule changes nothing.',
    params: ScheduleParams,
    response: Schedule,
    errors: ['schedule.missing'],
    sideEffect: true,
    handle: (input) =>
      withSchedule(input, async (tx, schedule) => {
        if (!schedule.is_paused) {
          await tx.run(pauseSchedule(schedule.id, input.caller.ownerId))
          await replaceMessage(tx, schedule.id, null, input.edge.settings)
          await tx.run(auditSchedule(input, 'schedule.paused', schedule))
        }
        return answerSchedule(tx, input, schedule.id)
      }),
  }),

  route({
    method: 'post',
    path: '/:schedule_id/resume',
    summary: 'Resume a paused schedule',
    description: 'It runs at its next time; missed times are not made up.',
    params: ScheduleParams,
    response: Schedule,
    errors: ['schedule.missing'],
    sideEffect: true,
    handle: (input) =>
      withSchedule(input, async (tx, schedule) => {
        if (schedule.is_paused) {
          const nextAt = findNextAt(schedule, schedule.now)
          await tx.run(resumeSchedule(schedule.id, nextAt))
          await replaceMessage(tx, schedule.id, nextAt, input.edge.settings)
          await tx.run(auditSchedule(input, 'schedule.resumed', schedule))
        }
        return answerSchedule(tx, input, schedule.id)
      }),
  }),
])

type Params = z.output<typeof ScheduleParams>
type ScheduleInput<R, B = undefined> = Input<Params, undefined, B, Caller> & Writes<R>

/** Runs work in the request's transaction, with the locked schedule. @throws fail('schedule.missing') */
function withSchedule<R>(
  input: ScheduleInput<R>,
  work: (tx: Transaction, schedule: LockedSchedule) => Promise<R | Answer<R> | Failure>,
): Promise<Answer<R>> {
  const { caller, params, transaction } = input
  return transaction(async (tx) => {
    const viewer = { ownerId: caller.ownerId, isAdmin: isAdmin(caller) }
    const schedule = await tx.maybeOne(lockSchedule(params.schedule_id, viewer))
    if (schedule === null) throw fail('schedule.missing')
    return work(tx, schedule)
  })
}

type ChosenTask = Pick<ScheduleFields, 'task_name' | 'queue_type' | 'args'>
type TaskChange = { readonly [Field in keyof ChosenTask]?: ChosenTask[Field] | undefined }

const MAX_CHECKS = 3

/**
 * Runs work with the locked schedule and the declared task that it has after `change`. The check of the arguments may take
 * seconds, so it comes before the lock. Another check follows if the task changes meanwhile.
 *
 * @throws as {@link withSchedule} and {@link requireArguments} do, and fail('database.busy') after too many checks.
 */
async function withTask<R>(
  input: ScheduleInput<R>,
  change: TaskChange,
  work: (tx: Transaction, schedule: LockedSchedule, declared: DeclaredTasks) => Promise<R | Answer<R>>,
): Promise<Answer<R>> {
  const { caller, edge, params } = input
  for (let checks = 1; ; checks++) {
    const text = await edge.reader.text(readSchedule, buildReadParameters(edge, caller, params.schedule_id))
    const found = text === null ? null : (JSON.parse(text) as StoredSchedule)
    const task = found === null || found.is_built_in ? null : mergeTask(found, change)
    // A failure waits for the lock, because a repeated request gets the stored answer.
    const [checked] = await Promise.allSettled([
      task === null ? new Map() : requireArguments(edge, caller, task),
    ])
    let isStale = false
    try {
      return await withSchedule(input, (tx, schedule) => {
        if (schedule.is_built_in) return work(tx, schedule, new Map())
        isStale = !isDeepStrictEqual(mergeTask(schedule, change), task)
        if (isStale) throw fail('database.busy')
        if (checked.status === 'rejected') throw checked.reason
        return work(tx, schedule, checked.value)
      })
    } catch (error) {
      if (!isStale || checks === MAX_CHECKS) throw error
    }
  }
}

/** Returns the task of a schedule after a change. */
const mergeTask = (schedule: ChosenTask, change: TaskChange): ChosenTask => ({
  task_name: change.task_name ?? schedule.task_name,
  queue_type: change.queue_type ?? schedule.queue_type,
  args: change.args ?? schedule.args,
})

function changeFields(
  input: ScheduleInput<Schedule, z.output<typeof ScheduleChange>>,
): Promise<Answer<Schedule>> {
  const { body, edge } = input
  return withTask({ ...input, body: undefined }, body, async (tx, schedule) => {
    const { id } = schedule
    if (schedule.is_built_in) throw fail('schedule.built_in')
    const fields = mergeFields(schedule, body)
    const hasNewTimes = TIMING_FIELDS.some((name) => fields[name] !== schedule[name])
    const nextAt = hasNewTimes
      ? requireNextTime({ ...fields, created_at: schedule.created_at }, schedule.now)
      : schedule.next_at
    const storedNextAt = schedule.is_paused ? null : nextAt
    await tx.run(updateSchedule(id, fields, storedNextAt))
    if (storedNextAt !== schedule.next_at) await replaceMessage(tx, id, storedNextAt, edge.settings)
    await tx.run(auditSchedule(input, 'schedule.updated', schedule, body))
    return answerSchedule(tx, input, id)
  })
}

const TIMING_FIELDS = ['cron', 'every_seconds', 'time_zone', 'start_at', 'end_at'] as const

/** Returns the fields of a schedule after a change. Null clears a bound; an absent field stays. */
function mergeFields(schedule: LockedSchedule, change: z.output<typeof ScheduleChange>): ScheduleFields {
  const { start_at, end_at, cron, every_seconds } = change
  const isRetimed = cron !== undefined || every_seconds !== undefined
  return {
    ...mergeTask(schedule, change),
    name: change.name ?? schedule.name,
    time_zone: change.time_zone ?? schedule.time_zone,
    overlap: change.overlap ?? schedule.overlap,
    catch_up: change.catch_up ?? schedule.catch_up,
    cron: isRetimed ? (cron ?? null) : schedule.cron,
    every_seconds: isRetimed ? (every_seconds ?? null) : schedule.every_seconds,
    start_at: start_at === undefined ? schedule.start_at : toTimestamp(start_at),
    end_at: end_at === undefined ? schedule.end_at : toTimestamp(end_at),
  }
}

function runNow(input: ScheduleInput<z.input<typeof Job>>): Promise<Answer<z.input<typeof Job>>> {
  const { caller, edge, requestId } = input
  return withTask(input, {}, async (tx, schedule, declared) => {
    const spec = buildScheduledJob(schedule, declared, { requestId, settings: edge.settings })
    const [added] = await tx.any(enqueueJobs([spec], edge.settings.quotas.waiting_jobs))
    const id = added!.job_id
    await tx.run(storeScheduleRun(schedule.id, id))
    await tx.run(auditSchedule(input, 'schedule.run', schedule))
    const text = await readWithin(tx, readJob, buildJobReadParameters(edge, caller, id))
    // The job that the request joined has ended and expired in the meantime.
    if (text === null) throw fail('job.missing')
    return answerJson(text, { headers: [['location', `/api/v1/jobs/${id}`]] })
  })
}

/** Returns the declared task. @throws as `requireTask` does, or fail('request.invalid') for wrong arguments. */
async function requireArguments(
  edge: Edge,
  caller: Caller,
  { task_name, queue_type, args }: ChosenTask,
): Promise<DeclaredTasks> {
  const declared = await findDeclaredTasks(edge, caller, [{ task_name, queue_type, args, path: [] }])
  const { payload } = requireTask(task_name, queue_type, declared)
  parseAt(payload, args, ['body', 'args'])
  return declared
}

const toTimestamp = (moment: string | null | undefined): string | null =>
  moment === null || moment === undefined ? null : new Date(moment).toISOString()

/** Returns the first time after `now`. @throws fail('schedule.never') if there is none. */
function requireNextTime(timing: Timing, now: string): string {
  const nextAt = findNextAt(timing, now)
  if (nextAt === null) throw fail('schedule.never')
  return nextAt
}

function findNextAt(timing: Timing, now: string): string | null {
  const next = findNextTime(timing, Date.parse(now))
  return next === null ? null : new Date(next).toISOString()
}

/** A schedule as PostgreSQL builds it. */
type StoredSchedule = Omit<Schedule, 'next_runs'>

function addNextRuns(schedule: StoredSchedule): Schedule {
  const next = schedule.next_run_at === null ? null : Date.parse(schedule.next_run_at)
  const times = listNextTimes(schedule, next, SHOWN_TIMES)
  return { ...schedule, next_runs: times.map((time) => new Date(time).toISOString()) }
}

/** @throws fail('schedule.missing') without a text. */
function answerStored(text: string | null): Answer<Schedule> {
  if (text === null) throw fail('schedule.missing')
  return answerCompactJson(JSON.stringify(addNextRuns(JSON.parse(text) as StoredSchedule)))
}

async function answerSchedule(
  tx: Transaction,
  { caller, edge }: Pick<ScheduleInput<Schedule>, 'caller' | 'edge'>,
  id: string,
): Promise<Answer<Schedule>> {
  return answerStored(await readWithin(tx, readSchedule, buildReadParameters(edge, caller, id)))
}

const buildReadParameters = ({ settings }: Edge, caller: Caller, id: string) =>
  [id, caller.ownerId, isAdmin(caller), settings.jobRetention] as const

function auditSchedule(
  input: EventRequest,
  kind: `schedule.${'created' | 'updated' | 'deleted' | 'paused' | 'resumed' | 'run'}`,
  schedule: Pick<LockedSchedule, 'id' | 'owner_id'>,
  // Without the arguments, which may be long.
  { args: _, ...data }: { readonly args?: unknown } = {},
) {
  return appendAuditEvent(input, kind, {
    accountId: schedule.owner_id,
    data: { schedule: schedule.id, ...data },
  })
}
