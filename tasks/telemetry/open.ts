import type { Log } from '../log.ts'
import type { TracingSettings } from './settings.ts'
import type { Tracing } from './tracing.ts'

/** Opens the tracing of a process; null if tracing is disabled. OpenTelemetry is loaded only if tracing is enabled. */
export async function openTracing(
  settings: TracingSettings | null,
  name: 'edge' | 'worker',
  log: Log,
): Promise<Tracing | null> {
  return settings === null ? null : (await import('./otlp.ts')).createTracing(settings, name, log)
}
