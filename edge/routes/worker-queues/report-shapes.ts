import { z } from 'zod'

/** The items of a report. */

const MAX_DELAY_SECONDS = 86_400

// The service sends `status` itself. The others are events of the connection for a browser's EventSource.
const RESERVED_KINDS: ReadonlySet<string> = new Set(['status', 'open', 'error'])

const Progress = z.strictObject({
  label: z.string().max(1000).default(''),
  current: z.int().min(0).max(2_147_483_647).nullish(),
  total: z.int().min(0).max(2_147_483_647).nullish(),
})

const Event = z.strictObject({
  kind: z
    .string()
    .regex(/^[a-z][a-z0-9_.-]{0,63}$/, 'must have 1 to 64 lower-case letters, digits and _.-, a letter first')
    .refine((kind) => !RESERVED_KINDS.has(kind), `must not be ${[...RESERVED_KINDS].join(', ')}`),
  data: z.unknown().default(null),
})

const LogLine = z.strictObject({
  level: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  message: z.string().max(4000),
  data: z.record(z.string(), z.unknown()).default({}),
})

const Done = z.strictObject({ result: z.unknown().default(null) })

const Failed = z.strictObject({
  code: z
    .string()
    .regex(
      /^[a-z][a-z0-9_.-]{0,99}$/,
      'must have 1 to 100 lower-case letters, digits and _.-, a letter first',
    )
    .default('worker_job.failed'),
  detail: z.string().max(4000),
  retry: z.boolean().default(true).describe('False if another attempt cannot help'),
  retry_after_seconds: z.number().min(0).max(MAX_DELAY_SECONDS).optional(),
})

const Release = z.strictObject({ delay_seconds: z.number().min(0).max(MAX_DELAY_SECONDS).default(0) })

const KINDS = ['progress', 'event', 'log', 'done', 'failed', 'release'] as const

export const Item = z
  .strictObject({
    job_id: z.uuid().toLowerCase(),
    attempt: z.int().min(1).max(2_147_483_647),
    n: z
      .int()
      .min(1)
      .max(2_147_483_647)
      .optional()
      .describe('Number of the item within its attempt, from 1 on: a repeated one is stored once'),
    progress: Progress.optional(),
    event: Event.optional(),
    log: LogLine.optional(),
    done: Done.optional(),
    failed: Failed.optional(),
    release: Release.optional(),
  })
  .refine((item) => KINDS.filter((kind) => item[kind] !== undefined).length === 1, {
    error: `must have exactly one of ${KINDS.join(', ')}`,
  })
  .meta({ id: 'WorkerReportItem' })
