import type { WebhookEvent } from '../../sql/webhooks/webhooks.ts'
import { findNearestName } from '../../tasks/platform/nearest-name.ts'
import { UsageError } from './io.ts'

// A record, so that the compiler reports a missing event. Importing the list of the service would load its database code.
/** The scope that an API key needs to receive an event. */
export const EVENT_SCOPES: Readonly<Record<WebhookEvent, string>> = {
  'job.done': 'jobs:read',
  'job.failed': 'jobs:read',
  'job.cancelled': 'jobs:read',
  'batch.done': 'batches:read',
  'document.read': 'documents:read',
  'send.changed': 'comms:read',
  'payment.changed': 'payments:read',
  'post.published': 'blog:read',
}

/** Names of the events that webhooks report. */
export const EVENT_NAMES = Object.keys(EVENT_SCOPES) as readonly WebhookEvent[]

/** Returns the name of an event. @throws UsageError */
export function parseEvent(name: string): WebhookEvent {
  if (Object.hasOwn(EVENT_SCOPES, name)) return name as WebhookEvent
  const nearest = findNearestName(name, EVENT_NAMES)
  const hint = nearest === null ? `the events are ${EVENT_NAMES.join(', ')}` : `did you mean ${nearest}?`
  throw new UsageError(`Unknown event ${name}; ${hint}`)
}
