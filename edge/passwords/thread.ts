import { workerData } from 'node:worker_threads'
import { answerWork } from './answering.ts'
import { hashArgon2, verifyArgon2 } from './argon2.ts'
import type { PasswordCost } from './work.ts'

/** The code of a thread that hashes passwords by our own rules, knows common ones, and verifies passkeys. */

answerWork(async (work) => {
  // 300 modules, which take as many ms: most threads never need them, and no event loop waits for them.
  if ('kind' in work) return (await import('./passkeys.ts')).verifyPasskey(work)
  // A list of 0.5 MB, which takes ms to read.
  if ('common' in work) return (await import('./common.ts')).isCommon(work.common)
  const { password, against } = work
  return against === undefined
    ? hashArgon2(password, workerData as PasswordCost)
    : verifyArgon2(against, password)
})
