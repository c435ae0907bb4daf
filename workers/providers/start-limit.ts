import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../sql/db.ts'
import { type Failure, fail } from '../../sql/errors.ts'
import { reserveStart, type SharedRate } from '../../sql/jobs/starts.ts'
import { AI_PROVIDERS, type AiProvider } from '../../tasks/ai/providers.ts'
import type { ProviderRequest } from '../../tasks/comms/ports.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'

/** Limits the rate at which requests to a provider start, in all workers together. */
export interface StartLimit {
  /**
   * Waits for a start, see {@link StartWait}.
   * @throws fail('provider.rate_limited'), which costs a job no try; the signal's reason.
   */
  enter(wait: StartWait, signal: AbortSignal): Promise<void>
}

/**
 * Rule for a request whose start is not due:
 *
 * - `first`: a person waits for it. It reserves the next start, and fails if that is more than 30 s ahead.
 * - `release`: it fails, and the job comes back. No slot waits.
 * - `stay`: it waits here, because a new attempt would repeat work. It lets `first` requests pass.
 */
export type StartWait = 'first' | 'release' | 'stay'

/** Returns the rule for a message. */
export const chooseWait = ({ isUrgent = false }: Pick<ProviderRequest, 'isUrgent'>): StartWait =>
  isUrgent ? 'first' : 'release'

/** Null: no limit, and no statement. */
export interface StartLimits {
  readonly sms: StartLimit | null
  readonly email: StartLimit | null
  /** One limit for each provider, because each has its own account. */
  readonly models: Readonly<Record<AiProvider, StartLimit>> | null
}

const MAX_FIRST_WAIT_MS = 30_000
// Jobs come back with the precision of timers and of the scheduler. Without this tolerance, an early job would lose its
// start. Requests of persons start at most this late because of other work.
const TOLERANCE_MS = 250

/** Creates the configured limits. */
export function createStartLimits(
  { startRates: { sms, email, aiProvider } }: Pick<Settings, 'startRates'>,
  db: Pick<Database, 'one'>,
): StartLimits {
  const create = (setting: string, name: string, { max, seconds }: { max: number; seconds: number }) =>
    createStartLimit(db, setting, { name: `provider:${name}`, starts: max, seconds })
  return {
    sms: sms && create('RATE_LIMIT_SMS', 'sms', sms),
    email: email && create('RATE_LIMIT_EMAIL', 'email', email),
    models:
      aiProvider &&
      (Object.fromEntries(
        AI_PROVIDERS.map((provider) => [
          provider,
          create('RATE_LIMIT_AI_PROVIDER', `ai:${provider}`, aiProvider),
        ]),
      ) as Record<AiProvider, StartLimit>),
  }
}

function createStartLimit(db: Pick<Database, 'one'>, setting: string, rate: SharedRate): StartLimit {
  const reserve = async (wait: StartWait): Promise<number> => {
    const isFirst = wait === 'first'
    const options = { maxWaitMs: isFirst ? MAX_FIRST_WAIT_MS : TOLERANCE_MS, comesBack: !isFirst }
    return (await db.one(reserveStart(rate, options))).wait_ms
  }
  return {
    enter: async (wait, signal) => {
      for (;;) {
        signal.throwIfAborted()
        const waitMs = await reserve(wait)
        if (waitMs < 0 && wait !== 'stay') throw createRefusal(setting, -waitMs, wait)
        if (waitMs !== 0)
          await delay(Math.abs(waitMs), undefined, { signal }).catch(() => signal.throwIfAborted())
        if (waitMs >= 0) return
      }
    },
  }
}

function createRefusal(setting: string, ms: number, wait: StartWait): Failure {
  const seconds = Math.ceil(ms / 1000)
  // A job comes back at the ms, but a person reads whole seconds in Retry-After.
  const retryAfter = wait === 'first' ? seconds : ms / 1000
  return fail('provider.rate_limited', { setting, seconds }, { retryAfter })
}
