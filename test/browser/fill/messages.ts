import type { Fill } from './fill.ts'

export const fill: Fill = async () => ({})
