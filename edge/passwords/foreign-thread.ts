import { answerWork } from './answering.ts'
import { verifyForeign } from './foreign.ts'
import type { PasswordWork } from './work.ts'

/** The code of the thread that verifies hashes of passwords from elsewhere. */

answerWork(async (work) => {
  const { against, password } = work as PasswordWork
  return verifyForeign(against!, password)
})
