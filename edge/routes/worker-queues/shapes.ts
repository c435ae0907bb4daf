import { z } from 'zod'
import { Timestamp } from '../../pipeline/request/schemas.ts'

/** Requests and responses of worker queues and their tasks. */

export const QueueName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,62}$/, 'must have 1 to 63 lower-case letters, digits, _ and -, a letter first')
  .meta({ examples: ['images'] })

// Any other name gets the same response as an unknown one.
export const QueueParams = z.object({ name: z.string().max(100) })

const MAX_SECONDS = 86_400

export const TaskName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_.:-]{0,99}$/, 'must have 1 to 100 letters, digits and _.:-, a letter first')
  .meta({ examples: ['resize'] })

export const TaskParams = z.object({ name: z.string().max(100), task: TaskName })

const JsonSchema = z
  .union([z.record(z.string(), z.unknown()), z.boolean()])
  .meta({ description: 'A JSON Schema (2020-12) without references to other documents' })

export const TASK_FIELDS = {
  args: JsonSchema.nullish(),
  result: JsonSchema.nullish(),
  max_tries: z.int().min(1).max(100).nullish().describe('Default: `WORKER_MAX_TRIES`'),
  timeout_seconds: z.int().min(1).max(MAX_SECONDS).nullish().describe('Default: 3600'),
  stall_seconds: z
    .int()
    .min(1)
    .max(MAX_SECONDS)
    .nullish()
    .describe('Longest time between two items `progress` or `event`'),
  limit: z.int().min(1).max(1000).nullish().describe('Most jobs that run at a time, or of a key'),
  secrets: z
    .array(z.string().min(1).max(200))
    .max(50)
    .optional()
    .describe('Paths in arguments and result that the page of a job shows as `***`'),
}

export const TaskFields = z.strictObject(TASK_FIELDS).meta({ id: 'WorkerTaskFields' })

export const WorkerTask = z
  .strictObject({
    name: z.string(),
    args: z.unknown(),
    result: z.unknown(),
    max_tries: z.int().nullable(),
    timeout_seconds: z.int().nullable(),
    stall_seconds: z.int().nullable(),
    limit: z.int().nullable(),
    secrets: z.array(z.string()),
  })
  .meta({ id: 'WorkerTask' })

const ENDPOINT_FIELDS = {
  url: z.string().min(1).max(2000),
  concurrency: z.int().min(1).max(1000).default(8).describe('Most jobs that it handles at a time'),
}

const NewEndpoint = z
  .strictObject({
    ...ENDPOINT_FIELDS,
    secret: z
      .string()
      .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, 'must be whsec_ and 24 to 64 bytes in base64')
      .optional()
      .describe('Signs the requests; default: a new one, which this response shows once'),
  })
  .meta({ id: 'WorkerEndpoint' })
export type NewEndpoint = z.output<typeof NewEndpoint>

export const NewQueue = z
  .strictObject({
    name: QueueName,
    organization_id: z.int().min(1).max(2_147_483_647).optional(),
    description: z.string().trim().max(500).optional(),
    open: z.boolean().default(false).describe('True to accept jobs of tasks that nobody has declared'),
    endpoint: NewEndpoint.optional(),
  })
  .meta({ id: 'WorkerQueueCreate' })

export const QueueChange = z
  .strictObject({
    description: z.string().trim().max(500).nullable().optional(),
    open: z.boolean().optional(),
    endpoint: NewEndpoint.nullable().optional().describe('Null: workers claim the jobs'),
  })
  .meta({ id: 'WorkerQueueUpdate' })

export const WorkerQueue = z
  .strictObject({
    name: z.string(),
    account_id: z.int().nullable(),
    organization_id: z.int().nullable(),
    description: z.string().nullable(),
    open: z.boolean(),
    endpoint: z
      .strictObject({
        url: z.string(),
        concurrency: z.int(),
        secret: z.string().optional().describe('Only in the response that sets it'),
      })
      .nullable(),
    tasks: z.array(WorkerTask),
    queued: z.int(),
    running: z.int(),
    waiting: z.int().describe('Number of jobs that wait for others'),
    workers: z.int().describe('Number of leases'),
    paused_at: Timestamp.nullable(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'WorkerQueue' })
export type WorkerQueue = z.input<typeof WorkerQueue>
