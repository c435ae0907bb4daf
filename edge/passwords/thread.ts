import { workerData } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'
import { answerWork } from './answering.ts'
import type { PasswordCost } from './work.ts'

/** The code of a thread that hashes passwords by our own rules and verifies passkeys. */

const ARGON2ID = 2
const PARAMETERS = { algorithm: ARGON2ID, parallelism: 1, ...(workerData as PasswordCost) }

answerWork(async (work) => {
  // 300 modules, which take as many ms: most threads never need them, and no event loop waits for them.
  if ('kind' in work) return (await import('./passkeys.ts')).verifyPasskey(work)
  return work.against === undefined
    ? hashSync(work.password, PARAMETERS)
    : verifySync(work.against, work.password)
})
