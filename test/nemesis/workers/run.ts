import { setTimeout as delay } from 'node:timers/promises'
import type { StepArgs } from './messages.ts'

export interface ClaimedJob {
  readonly job_id: string
  readonly attempt: number
  readonly args: StepArgs
  readonly alone: boolean
}

/** An attempt of a job in an HTTP worker. */
export interface Run {
  readonly job: ClaimedJob
  /** Number of the last item that was reported. */
  n: number
  /** True if another attempt has replaced this one. */
  isStopped: boolean
  /** True once the service may know how the attempt has ended. */
  isEndSent: boolean
}

/** A part of a report, without the job and the attempt. */
export type Item = Readonly<Record<string, unknown>>

const RETRY_AFTER_SECONDS = 0.2

/** Runs a job as its arguments say, and reports each step and the end. */
export async function execute(run: Run, report: (item: Item) => void): Promise<void> {
  const { attempt, args } = run.job
  const addNumbered = (item: Item): void => report({ ...item, n: ++run.n })
  for (let step = 1; step <= args.steps; step++) {
    await delay(args.ms)
    if (run.isStopped) return
    const label = `attempt ${attempt}, step ${step}`
    addNumbered({ progress: { label, current: step, total: args.steps } })
    addNumbered({ event: { kind: 'step', data: { attempt, step } } })
    if (step === 1) addNumbered({ log: { message: `${args.word} has begun` } })
  }
  report(buildEnd(attempt, args))
}

function buildEnd(attempt: number, { word, first }: StepArgs): Item {
  if (attempt === 1 && first === 'failed')
    return { failed: { detail: 'The first attempt fails', retry_after_seconds: RETRY_AFTER_SECONDS } }
  if (attempt === 1 && first === 'release') return { release: {} }
  return { done: { result: { word, attempt } } }
}
