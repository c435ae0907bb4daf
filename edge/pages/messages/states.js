// States and channels of messages as people read them.

import { chip } from '../parts/table.js'

export const CHANNEL_NAMES = { email: 'Email', sms: 'Text message', call: 'Call' }
export const CHANNELS = Object.entries(CHANNEL_NAMES)

const TONES = { scheduled: 'live', queued: '', sending: 'live', sent: 'good', delivered: 'good', failed: 'bad', bounced: 'bad', complained: 'bad', unknown: 'warn', cancelled: '' }
export const STATES = Object.keys(TONES)

/** Explanations of states whose name does not say what to do. */
export const STATE_HELP = {
  scheduled: 'It is sent at the time that its sender set.',
  queued: 'It waits to be sent, or to be tried again.',
  sending: 'The provider has not answered yet.',
  sent: 'The provider accepted it. It may still report the delivery.',
  unknown: 'The provider may have accepted it, so it is not sent again. Ask the recipient, or look it up at the provider.',
  bounced: 'The mail server of the recipient refused it for good. The address is suppressed.',
  complained: 'The recipient reported it as spam. The address is suppressed.',
}

export const stateChip = (status) => chip(status, TONES[status] ?? '')

/** Returns true if a message can still be cancelled. */
export const isCancellable = ({ status }) => status === 'scheduled' || status === 'queued'

/** Returns true if the state of a message is yet to change. */
export const isOpen = ({ status }) => isCancellable({ status }) || status === 'sending'
