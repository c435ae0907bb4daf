import { setTimeout as delay } from 'node:timers/promises'
import type { Chance } from '../../chance.ts'
import type { World } from '../world.ts'
import type { EdgeLink } from './link.ts'

/** Faults of HTTP workers and of their network. Leases last for 5 s, so that some of these faults outlast them. */
export const WORKER_FAULTS = [
  {
    name: 'HTTP worker killed',
    weight: 3,
    inject: async (w: World, c: Chance) => pickWorker(w, c)?.kill(),
  },
  {
    name: 'HTTP worker frozen',
    weight: 3,
    inject: async (w: World, c: Chance) => pickWorker(w, c)?.freeze(c.between(1_000, 12_000)),
  },
  {
    name: "HTTP worker's network cut",
    weight: 2,
    inject: (w: World, c: Chance) => applyFor(w, c, (link) => link.cut()),
  },
  {
    name: "HTTP worker's network silent",
    weight: 2,
    inject: (w: World, c: Chance) => applyFor(w, c, (link) => link.silence('all')),
  },
  {
    name: "HTTP worker's answers lost",
    weight: 2,
    inject: (w: World, c: Chance) => applyFor(w, c, (link) => link.silence('answers')),
  },
] as const

/** Returns a worker; undefined until the first ones have started. */
const pickWorker = ({ httpWorkers }: World, chance: Chance) =>
  httpWorkers.length === 0 ? undefined : chance.pick(httpWorkers)

async function applyFor(world: World, chance: Chance, act: (link: EdgeLink) => void): Promise<void> {
  const link = pickWorker(world, chance)?.link
  if (link === undefined) return
  act(link)
  await delay(chance.between(0, 9_000))
  link.restore()
}
