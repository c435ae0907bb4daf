// Swagger UI takes its colour scheme from its own class, not from the system.
const dark = matchMedia('(prefers-color-scheme: dark)')
const applyColorScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', applyColorScheme)
applyColorScheme()

window.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  filter: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  // Null hides the badge, which would call an external validator.
  validatorUrl: null,
})
