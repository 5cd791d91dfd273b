// What every signed-in page has: the theme switch.
import { bindThemeSwitch } from "./theme.js";

bindThemeSwitch();
