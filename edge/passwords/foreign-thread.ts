import { verifyForeign } from './foreign.ts'
import type { PasswordRequest } from './messages.ts'
import { serveRequests } from './serve-requests.ts'

/** Entry point of the thread that verifies imported password hashes. */

serveRequests(async (request) => {
  const { against, password } = request as PasswordRequest
  return verifyForeign(against!, password)
})
