/** A chunk's number and its score. */
export interface Hit {
  readonly chunk: number
  readonly score: number
}

/**
 * Returns the chunks with the highest scores above `floor`, best first. If scores are equal, the chunk with the lower
 * number comes first. Ignores NaN.
 */
export function selectTop(scores: Float64Array | Float32Array, max: number, floor = 0): Hit[] {
  // A heap of the best chunks so far; its root is the worst of them.
  const heap: number[] = []
  const isWorse = (a: number, b: number): boolean =>
    scores[a]! < scores[b]! || (scores[a] === scores[b] && a > b)
  const siftDown = (): void => {
    for (let at = 0; ; ) {
      const left = 2 * at + 1
      if (left >= heap.length) return
      const child = left + 1 < heap.length && isWorse(heap[left + 1]!, heap[left]!) ? left + 1 : left
      if (!isWorse(heap[child]!, heap[at]!)) return
      ;[heap[at], heap[child]] = [heap[child]!, heap[at]!]
      at = child
    }
  }
  const siftUp = (): void => {
    for (let at = heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!isWorse(heap[at]!, heap[parent]!)) return
      ;[heap[at], heap[parent]] = [heap[parent]!, heap[at]!]
      at = parent
    }
  }
  for (let chunk = 0; chunk < scores.length; chunk++) {
    if (!(scores[chunk]! > floor)) continue
    if (heap.length < max) {
      heap.push(chunk)
      siftUp()
    } else if (max > 0 && isWorse(heap[0]!, chunk)) {
      heap[0] = chunk
      siftDown()
    }
  }
  return heap
    .sort((a, b) => scores[b]! - scores[a]! || a - b)
    .map((chunk) => ({ chunk, score: scores[chunk]! }))
}
