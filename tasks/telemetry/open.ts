import type { Log } from '../log.ts'
import type { TracingSettings } from './settings.ts'
import type { Tracing } from './tracing.ts'

/** The tracing of a process; null where it is off, which loads nothing of OpenTelemetry. */
export async function openTracing(
  settings: TracingSettings | null,
  name: 'edge' | 'worker',
  log: Log,
): Promise<Tracing | null> {
  return settings === null ? null : (await import('./otlp.ts')).createTracing(settings, name, log)
}
