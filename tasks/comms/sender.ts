/** Senders of text messages. Calls need a phone number. */

/**
 * A short code, or an alphanumeric sender with a letter
 * (https://www.twilio.com/docs/glossary/what-alphanumeric-sender-id).
 */
const NAME_SOURCE = String.raw`\d{3,8}|(?=.*[A-Za-z])(?! )[\w+& -]{1,11}(?<! )`
const SERVICE_SOURCE = 'MG[0-9a-fA-F]{32}'

export const NUMBER_PATTERN = /^\+[1-9]\d{6,14}$/
/** Matches the id of a messaging service, which chooses the sender. */
export const SERVICE_PATTERN = new RegExp(`^${SERVICE_SOURCE}$`)
/** Matches a sender that is no phone number. */
export const NAMED_SENDER_PATTERN = new RegExp(`^(?:${NAME_SOURCE}|${SERVICE_SOURCE})$`)
/** Matches a number, a short code or an alphanumeric sender. */
export const SENDER_PATTERN = new RegExp(`^(?:${NAME_SOURCE})$|${NUMBER_PATTERN.source}`)
