// Sets the theme that was chosen before anything is painted. No module: it must
// not wait.
{
  let theme;
  try {
    theme = localStorage.getItem('theme');
  } catch {
    // Without storage the system's theme stays.
  }
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
}
