import type { WebhookEvent } from '../../sql/webhooks/webhooks.ts'
import { findNearest } from './arguments.ts'
import { UsageError } from './io.ts'

// A record, so that the compiler reports a missing event. Importing the list of the service would load its database code.
const EVENTS: Readonly<Record<WebhookEvent, true>> = {
  'job.done': true,
  'job.failed': true,
  'job.cancelled': true,
  'batch.done': true,
  'document.read': true,
  'send.changed': true,
  'payment.changed': true,
  'post.published': true,
}

/** Names of the events that webhooks report. */
export const EVENT_NAMES = Object.keys(EVENTS) as readonly WebhookEvent[]

/** Returns the name of an event. @throws UsageError */
export function parseEvent(name: string): WebhookEvent {
  if (Object.hasOwn(EVENTS, name)) return name as WebhookEvent
  const nearest = findNearest(name, EVENT_NAMES)
  const hint = nearest === null ? `the events are ${EVENT_NAMES.join(', ')}` : `did you mean ${nearest}?`
  throw new UsageError(`Unknown event ${name}; ${hint}`)
}
