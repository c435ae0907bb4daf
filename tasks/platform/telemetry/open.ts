import type { Log } from '../log.ts'
import type { TracingSettings } from './settings.ts'
import type { Tracing } from './tracing.ts'

/** Creates the tracing of a process. Returns null, and loads nothing of OpenTelemetry, if tracing is disabled. */
export async function openTracing(
  settings: TracingSettings | null,
  name: 'edge' | 'worker',
  log: Log,
): Promise<Tracing | null> {
  return settings === null ? null : (await import('./otlp.ts')).createTracing(settings, name, log)
}
