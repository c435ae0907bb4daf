// Reasons of errors that callers can fix (https://www.twilio.com/docs/api/errors). They do not quote the provider,
// whose texts can contain account and phone numbers.
const REASONS: Readonly<Record<number, string>> = {
  10004: 'too many calls of the account are under way',
  14107: 'the sender has sent too many messages',
  20003: 'it does not accept the credentials',
  20404: 'the account or the requested resource does not exist',
  21205: 'it cannot use the script URL',
  21210: 'the sender number is not verified',
  21211: 'the number is not valid',
  21212: 'the sender number is not valid',
  21214: 'the number cannot be reached',
  21215: 'calls to the country of the number are not allowed for the account',
  21216: 'calls to the number are not allowed',
  21217: 'the number does not look like a phone number',
  21219: 'a trial account can only call verified numbers',
  21401: 'the number is not valid',
  21408: 'messages to the country of the number are not allowed for the account',
  21601: 'the sender number cannot send messages',
  21602: 'the message is empty',
  21604: 'the number is missing',
  21606: 'the sender number cannot send messages to the number',
  21608: 'a trial account can only send to verified numbers',
  21610: 'the number has unsubscribed from the sender',
  21611: 'the message queue of the sender is full',
  21612: 'the number cannot be reached from the sender number',
  21614: 'the number is not a mobile number',
  21617: 'the message is too long',
}

// Refusals for now: the call concurrency of the account, the rate and the queue of the sender, too many requests.
const BUSY_CODES: ReadonlySet<number | null> = new Set([10004, 14107, 20429, 21611])
const BUSY_STATUSES: ReadonlySet<number> = new Set([408, 425, 429])

/** True if the provider has not processed a request, and may accept it later. */
export const isBusy = (status: number, code: number | null): boolean =>
  BUSY_STATUSES.has(status) || BUSY_CODES.has(code)

/**
 * Explains an error.
 * @param code Twilio's error code; null if the provider gave none.
 */
export function explainError(status: number, code: number | null): string {
  if (code === null) return status === 401 ? REASONS[20003]! : `HTTP status ${status}`
  return `${REASONS[code] ?? `HTTP status ${status}`} (error ${code})`
}
