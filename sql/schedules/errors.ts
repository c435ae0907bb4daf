/** Errors of schedules: part of the table in `errors.ts`. */
export const scheduleErrors = {
  'schedule.missing': { detail: 'Schedule not found' },
  'schedule.built_in': { detail: 'A built-in schedule can only be paused, resumed and run' },
  'schedule.never': {
    detail: 'The schedule would never run: its cron expression matches no day, or no time is before end_at',
  },
} as const
