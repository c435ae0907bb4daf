/**
 * Creates a function that loads something on first use, and keeps it. It forgets a failure, such as one for lack of file
 * descriptors, so the next use tries again.
 */
export function createLazy<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | null = null
  return () => {
    loading ??= load().catch((error) => {
      loading = null
      throw error
    })
    return loading
  }
}
